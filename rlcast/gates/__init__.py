"""The gate for CI: policy from `rlcast.toml`, a decision, and its reports in the forms that CI reads."""
