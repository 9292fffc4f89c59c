"""Stands in for a large package that a peer imports when it is loaded and that nothing measured here uses."""
