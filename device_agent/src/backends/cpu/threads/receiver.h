// Where a stage waits for work: the stage before triggers it.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

#include "system/clock.h"

namespace pocketfarm::cpu {

// A queue of items for one taker. A hand-over is often due within microseconds, and waking a thread takes longer than
// that: the taker looks for a while before it sleeps, where it has a core of its own.
template <typename Item>
class Receiver {
 public:
  explicit Receiver(int64_t look_ns) : look_ns_(look_ns) {}

  void trigger(const Item& item) {
    {
      const std::lock_guard lock(mutex_);
      items_.push_back(item);
    }
    wake_.notify_one();
  }

  Item take() {
    const int64_t until_ns = look_ns_ > 0 ? boottime_ns() + look_ns_ : 0;
    std::unique_lock lock(mutex_);
    while (items_.empty() && look_ns_ > 0 && boottime_ns() < until_ns) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
    wake_.wait(lock, [&] { return !items_.empty(); });
    const Item item = items_.front();
    items_.pop_front();
    return item;
  }

 private:
  const int64_t look_ns_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Item> items_;
};

}  // namespace pocketfarm::cpu
