"""The course: its labs, its data, and the JupyterLab it is opened in."""
