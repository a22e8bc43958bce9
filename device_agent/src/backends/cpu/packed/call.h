// The arguments by which operations are told how weights are packed.
#pragma once

#include "packed.h"
#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {

// Whole numbers from `first` on: bits, block, group, zero, fields.
Packed packed_of(const Call& call, size_t first);
// They are right, and buffer number `buffer` has rows of so many columns.
void check_packed(Check& check, const Packed& packed, const char* name, size_t buffer, int64_t rows, int64_t columns);

}  // namespace pocketfarm::cpu
