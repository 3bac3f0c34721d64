"""What people look at: plots, the report, notebooks. All of it reads `equations_`."""
