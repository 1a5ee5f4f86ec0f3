"""The one place that holds the version."""

VERSION = "0.1.0"
