#include "gates.h"

#include <cstdio>

#include "system/clock.h"

namespace pocketfarm {
namespace {

constexpr int64_t kHeatLookNs = 100'000'000;

}  // namespace

HeatGate::HeatGate(Journal& journal, const std::string& sysroot, int limit_dc) : journal_(journal), limit_dc_(limit_dc) {
  if (limit_dc_ == 0) return;
  battery_ = Battery::open(sysroot);
  skin_ = Skin::open(sysroot);
  if (!battery_.temp.number() && !skin_.tenths())
    journal_.write("warning", JsonObject().set("code", "no_temperature").set("message", "neither the battery's nor the skin's temperature can be read: nothing ends this run when it is hot"));
}

bool HeatGate::is_hot() {
  if (limit_dc_ == 0 || hot_ != nullptr) return hot_ != nullptr;
  const int64_t now_ns = boottime_ns();
  if (now_ns - looked_ns_ < kHeatLookNs) return false;
  looked_ns_ = now_ns;
  const auto look = [&](const char* name, std::optional<int64_t> temp_dc) {
    if (hot_ != nullptr || !temp_dc || *temp_dc <= limit_dc_) return;
    hot_ = name;
    seen_dc_ = *temp_dc;
  };
  look("battery", battery_.temp.number());
  look("skin", skin_.tenths());
  return hot_ != nullptr;
}

std::string HeatGate::what() const {
  if (hot_ == nullptr) return "";
  char text[80];
  std::snprintf(text, sizeof text, "%s at %.1f C, above %g C", hot_, static_cast<double>(seen_dc_) / 10, limit_dc_ / 10.0);
  return text;
}

}  // namespace pocketfarm
