"""Making back-translations of schemas, as the SGD-X paper does."""
