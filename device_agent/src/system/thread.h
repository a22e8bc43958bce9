// The one place where the agent starts threads.
#pragma once

#include <exception>
#include <thread>
#include <utility>

namespace pocketfarm {

// Calls `body`; where it throws the process ends here, with a last line that says why (main.cc): unwinding would take
// away what other threads are at work on. Not `noexcept`, which may forget the exception before it ends the process.
template <typename Body>
auto or_end(const Body& body) {
  try {
    return body();
  } catch (...) {
    std::terminate();
  }
}

// A thread that runs `body`.
template <typename Body>
std::thread start_thread(Body body) {
  return or_end([&] { return std::thread(std::move(body)); });
}

}  // namespace pocketfarm
