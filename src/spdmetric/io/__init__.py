"""Files: matrices in the formats people have, models, atomic writing."""
