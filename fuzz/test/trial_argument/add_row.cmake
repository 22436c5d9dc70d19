# Copies the headers of a problem with one argument more: cmake -DSOURCE=root -DOUT=folder -P add_row.cmake
#
# "hidden_below": row i sees no key before this one. What stands here is all that such an argument needs: its row, its
# member and its meaning. Each place must be found exactly once.
function(insert file before text)
  set(from "${SOURCE}/${file}")
  if(EXISTS "${OUT}/${file}")
    set(from "${OUT}/${file}")
  endif()
  file(READ "${from}" content)
  string(FIND "${content}" "${before}" first)
  string(FIND "${content}" "${before}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "${file}: this must occur exactly once:\n${before}")
  endif()
  string(REPLACE "${before}" "${text}${before}" content "${content}")
  file(WRITE "${OUT}/${file}" "${content}")
endfunction()

file(REMOVE_RECURSE "${OUT}")
# The row.
insert(core/problem/problem.h "  std::int32_t heads = 1;" "  std::int64_t hidden_below = 0;\n")
insert(core/problem/fields.h [[
};
inline constexpr std::size_t scalar_count]] [[

    ScalarField<std::int64_t>{.name = "hidden_below",
                              .of = Operations::attention,
                              .member = &Problem::hidden_below,
                              .neutral = 0,
                              .range = {1, 16384}},]])
# The meaning.
insert(core/problem/sight.h "};\n[[nodiscard]] inline SightRule sight_rule" "  std::int64_t hidden_below = 0;\n")
insert(core/problem/sight.h "};\n}\n\n/// Row i of" ", .hidden_below = c.hidden_below")
insert(core/problem/sight.h "  last = std::clamp" "  first = rule.hidden_below;\n")
