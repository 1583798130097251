"""The `published` study: registers made from the transcribed figures of the original study."""
