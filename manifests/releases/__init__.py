"""Release data: flags, feature gates and admission plugins by version. `tables` is what others read."""
