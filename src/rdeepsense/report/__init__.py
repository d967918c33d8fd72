"""Pictures of predictive distributions."""
