"""The widgets of the app's windows, dialogs and menus."""
