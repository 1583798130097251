"""The noise layer in front of anybody's tools: declaration, MCP proxy, trainers, wrappers."""
