"""Episodes, manifests, joins, splits and samplers."""
