"""The screens, one file each, one question each."""
