// The hash of a plan: SHA-256 of its canonical JSON, equal to `Plan.plan_hash` of kernels/plan/model.py.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace pocketfarm {

// 16 hex digits. Canonical: sorted keys, no spaces, ASCII, numbers as Python prints them.
std::string plan_hash(const nlohmann::json& plan);

}  // namespace pocketfarm
