"""Learning on after training: the last layer in closed form, tracked quantiles, alarms; pure."""
