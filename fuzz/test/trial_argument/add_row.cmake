# Copies the headers of a problem with one argument more: cmake -DSOURCE=root -DOUT=folder -P add_row.cmake
#
# "hidden_below": row i sees no key before this one. What stands here is all that such an argument needs: its row, its
# member and its meaning.
include("${CMAKE_CURRENT_LIST_DIR}/../../../core/test/overlay.cmake")
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
                              .range = {1, 16384},
                              .variant = {"hidden_below"}},]])
# The meaning.
insert(core/problem/sight.h "};\n[[nodiscard]] inline SightRule sight_rule" "  std::int64_t hidden_below = 0;\n")
insert(core/problem/sight.h "};\n}\n\n/// The position of row i" ",\n          .hidden_below = c.hidden_below")
insert(core/problem/sight.h "  last = std::clamp" "  first = std::max(first, rule.hidden_below);\n")
