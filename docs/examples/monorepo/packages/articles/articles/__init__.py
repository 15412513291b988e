"""The articles of the site: what they are called, where they go, in which order."""
