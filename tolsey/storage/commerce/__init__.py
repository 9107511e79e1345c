"""SQL for stores: their connections, what their shops and agents leave behind, their exports."""
