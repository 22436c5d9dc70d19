// What most sources include of the standard library and of fmt: half a second of each of them, compiled once for all.
// A source still includes what it uses; ATTEST_PRECOMPILED=OFF, with which .ci/run's clang-tidy reads it, shows what it
// does not.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
