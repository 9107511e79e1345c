"""What proves a signature later: bundles of evidence, daily roots over all of them, and the checks of both."""
