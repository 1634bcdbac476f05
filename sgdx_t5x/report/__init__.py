"""Reports: tables, plots and a page of scores."""
