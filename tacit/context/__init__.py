"""From blocks that want in to a prompt that fits. Pure: values in, values out."""
