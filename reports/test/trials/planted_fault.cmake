# "fault:trial": the first number of a row is wrong where N leaves 2 when divided by 3.
insert(properties/faults/described/faults_of_numbers.cc [[{.name = "empty-splits-nan"]] [[
{.name = "trial",
           .classes = "B",
           .wrong = "a row's first number is 1 too large where N leaves 2 when divided by 3",
           .stands_for = "attest#1",
           .caught_by = "attention.oracle",
           .make = {}},
          ]])
insert(properties/faults/planted_row.cc [[    if (is("lse-base-two"))]] [[
    if (is("trial") && row_.keys % 3 == 2 && row_.value_dim > 0) row_.out[0] += Real{1};
]])
