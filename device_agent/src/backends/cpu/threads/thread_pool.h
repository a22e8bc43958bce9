// Threads that share out the tasks of an operation: they stay for the whole run, or start and end with each operation.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace pocketfarm::cpu {

class ThreadPool {
 public:
  enum class Life { kept, per_call, in_order };

  // The caller is one of the threads; where each is bound to one of `cores`, the caller only waits, and stays unbound.
  explicit ThreadPool(int threads, Life life = Life::kept, std::vector<int> cores = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  // Calls task(index, thread) for every index below `count`, spread over the threads; returns when all are done. A task
  // that throws ends the process.
  void each(int64_t count, const std::function<void(int64_t index, int thread)>& task);
  // Calls task(begin, end) for parts of [0, count) of at least `grain` elements.
  void ranges(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& task);
  // A thread's own scratch memory of at least `floats`, valid until it asks for more.
  float* scratch(int thread, size_t floats);

 private:
  void start(int thread, void (ThreadPool::*body)(int));
  void work(int thread);
  void take_tasks(int thread);
  void each_with_new_threads();
  template <typename Condition>
  bool spin_until(const Condition& condition) const;
  template <typename Condition>
  void wait_until(const Condition& condition);

  const int threads_;
  const Life life_;
  const std::vector<int> cores_;  // empty: threads run anywhere
  const bool spins_;
  // A worker takes part in the job that is open when it arrives; the caller waits only for those that take part, not
  // for one that is still asleep. Counts and flags are read in the order in which others wrote them (seq_cst).
  std::atomic<uint64_t> jobs_{0};
  std::atomic<bool> open_{false}, stop_{false}, waiting_{false};
  std::atomic<int> active_{0}, asleep_{0};
  std::atomic<int64_t> next_{0};
  int64_t count_ = 0;
  const std::function<void(int64_t, int)>* task_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::vector<float>> scratch_;
  std::vector<std::thread> workers_;
};

}  // namespace pocketfarm::cpu
