"""What is learnt: data, objective, training and metric. One file a task."""
