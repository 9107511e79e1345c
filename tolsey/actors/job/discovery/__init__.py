"""The work of the jobs that find storefronts and look at them again."""
