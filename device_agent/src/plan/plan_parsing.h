// The parts of plan.json and how they fit each other; each function throws PlanFault at the Reader's path.
#pragma once

#include <string>
#include <unordered_map>

#include "plan.h"
#include "system/json_reader.h"

namespace pocketfarm {

// Indices of named parts; refuses a name that comes twice.
class Names {
 public:
  explicit Names(const char* what) : what_(what) {}

  void add(const Reader& id) {
    if (!index_.emplace(id.text(), index_.size()).second) id.fail(std::string("a second ") + what_ + " of this id");
  }
  size_t find(const Reader& id) const {
    const auto found = index_.find(id.text());
    if (found == index_.end()) id.fail(std::string("no ") + what_ + " `" + id.text() + "` in this plan");
    return found->second;
  }

 private:
  const char* what_;
  std::unordered_map<std::string, size_t> index_;
};

// A program without a part for the plan's API, a file that the plan does not list, numbers out of range are faults.
Program parse_program(const Reader& json, const Plan& plan);
// Whether a program or pool is the CPU backend's in a plan of another API.
bool parse_side(const Reader& json, Api api);
// Three numbers of 1 to `max`.
Extent parse_extent(const Reader& json, uint32_t max);
// Adds the steps to a plan that has its programs and buffers.
void parse_steps(const Reader& json, const Names& programs, const Names& buffers, Plan& plan);
// Adds the stages of a training to a plan that has its steps and buffers.
void parse_stages(const Reader& json, const Names& buffers, Plan& plan);
// The same of the passes of a generation, with a stage for the steps of each.
void parse_generation(const Reader& json, const Names& buffers, Plan& plan);

// [offset, offset + bytes) lies within `size` bytes of `whole`.
void check_range(const Reader& at, const std::string& whole, uint64_t offset, uint64_t bytes, uint64_t size);
void check_arguments(const Reader& at, const Plan& plan, const Program& program,
                     const std::vector<Argument>& arguments);
// A copy stays within its buffers and does not overlap itself.
void check_copy(const Reader& at, const Plan& plan, const Step& copy);
// A step that moves data stays on one side of a mixed plan.
void check_side(const Reader& at, const Plan& plan, const Step& step);
// Every buffer is swapped out before it is swapped in.
void check_swaps(const Reader& at, const Plan& plan);

// The hash of a plan, equal to `Plan.plan_hash` of kernels/plan/model.py: 16 hex digits of the SHA-256 of its canonical JSON,
// which has sorted keys, no spaces, ASCII, and numbers as Python prints them.
std::string plan_hash(const nlohmann::json& plan);

}  // namespace pocketfarm
