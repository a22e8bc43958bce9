// The variables of a plan in one file:
//   {"checkpoint":1,"plan":"<hash>","variables":["<id>",...],"bytes":[...]}\n
//   the variables' contents, in this order
//   SHA-256 of all that is before it, 64 hex digits
#pragma once

#include <string>
#include <string_view>

#include "backends/backend.h"
#include "journal/journal.h"

namespace pocketfarm {

// The variables' contents, in the plan's order.
Result<std::string> read_variables(const Plan& plan, Backend& backend);
Status write_variables(std::string_view values, const Plan& plan, Backend& backend);
// Those that nothing fills when a plan is loaded, keys and values of tokens that came before, become zeros.
Status clear_states(const Plan& plan, Backend& backend);
// Written beside its place and renamed: a reader finds the one before or this one. Then the journal tells of it, with `count` of
// what it is `of`: epochs or tokens.
Status write_checkpoint(const std::string& file, const Plan& plan, Backend& backend, Journal& journal, const char* of, int64_t count);
// Into the device's variables, once everything is found right. `usage` where the file is damaged or another plan's.
Status read_checkpoint(const std::string& file, const Plan& plan, Backend& backend);

}  // namespace pocketfarm
