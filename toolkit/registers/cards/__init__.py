"""Cards of dataset repositories."""
