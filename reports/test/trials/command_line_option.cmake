# attest list --trial: how many properties there are.
insert(reports/commands/list_command.cc "  bool json = false, markdown = false;" "  bool trial = false;\n")
insert(reports/commands/list_command.cc [[    list.flag("--json", json, "as JSON");]] [[
    list.flag("--trial", trial, "how many properties there are, and nothing else");
]])
insert(reports/commands/list_command.cc "  Listed listed = options.listed;" [[
  if (options.trial) {
    fmt::print("{}\n", catalogue().size());
    return 0;
  }
]])
