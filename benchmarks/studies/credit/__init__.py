"""Sources of credit side by side, and critic, guidance and graded negatives one by one."""
