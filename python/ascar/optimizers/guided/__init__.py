"""Models of the loss over encoded configurations, each with a mean and a standard deviation anywhere."""
