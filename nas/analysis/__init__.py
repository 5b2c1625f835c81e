"""Studies of tasks and samplers: audits, comparisons, tournaments."""
