"""The DAGs, one file a flow, and the command line that starts them."""
