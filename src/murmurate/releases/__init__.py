"""What may leave: release folders, their manifests, and the kinds of data they hold."""
