"""The paper, reproduced: methods, tables with the printed numbers, figures."""
