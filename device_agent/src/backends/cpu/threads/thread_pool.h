// Threads that share out the tasks of an operation: they stay for the whole run, or start and end with each operation.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
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

  // Multiply-adds from which it pays to meet the other threads, and to fetch from their caches what they wrote: some 3 us
  // of one core. Work of other kinds is counted by its time: an element that is read and written as four or more.
  static constexpr int64_t kLeastWork = int64_t{1} << 17;

  int threads() const { return threads_; }
  // So many take part in `work` that is spread over all: 1 where it is less than kLeastWork.
  int threads_for(int64_t work) const { return life_ == Life::kept && work < kLeastWork ? 1 : threads_; }
  // Calls task(index, thread) for every index below `count`, spread over the threads; returns when all are done. A task
  // that throws ends the process. `work`: of all tasks together; the caller does alone what is less than kLeastWork.
  void each(int64_t count, const std::function<void(int64_t index, int thread)>& task, int64_t work = kLeastWork);
  // Calls task(begin, end) for parts of [0, count) of at least `grain` elements.
  void ranges(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& task);
  // The same of elements of so much work each.
  void shared(int64_t count, int64_t work, const std::function<void(int64_t begin, int64_t end)>& task) {
    ranges(count, threads_for(count * work) == 1 ? count : 1, task);
  }
  // A thread's own scratch memory of at least `floats`, valid until it asks for more.
  float* scratch(int thread, size_t floats);

 private:
  // Tasks of one thread, which takes them in their order; who has none left takes of the others.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void start(int thread, void (ThreadPool::*body)(int));
  void work(int thread);
  void share_out(int64_t count);
  void take_tasks(int thread);
  bool all_taken() const;
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
  const std::unique_ptr<Share[]> shares_;
  const std::function<void(int64_t, int)>* task_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::vector<float>> scratch_;
  std::vector<std::thread> workers_;
};

}  // namespace pocketfarm::cpu
