"""OpenClaw as a host: where it is, how it is configured, what tacit adds to it and removes again.

Pure: `settings`, `install_plan`, `uninstall_plan`, `bootstrap_files`, `cost_comparison`, `events`. Everything
that runs the host's own command goes through `host_command`.
"""
