#include "siamese/cli/huge_pages.h"

#if SIAMESE_HAS_TCMALLOC

#include <algorithm>
#include <cstdint>
#include <new>

#include <gperftools/malloc_extension.h>
#include <sys/mman.h>

namespace siamese::cli {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMost = size_t{1} << 46;  // no sum below overflows; what is larger fails anyway

// Where tcmalloc gets memory from when it grows. What it gets it keeps.
class HugePages : public SysAllocator {
 public:
  explicit HugePages(SysAllocator* otherwise) : otherwise_(otherwise) {}

  void* Alloc(size_t size, size_t* actual_size, size_t alignment) override {
    if (size > kMost || alignment > kMost) return nullptr;
    const size_t step = std::max(alignment, kHugePage);
    const size_t wanted = (size + kHugePage - 1) / kHugePage * kHugePage;
    // The system aligns to 4 KB only: a step more, and both ends given back.
    void* const mapped = mmap(nullptr, wanted + step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // Under a limit that has no room for the step there may be room for what was asked.
    if (mapped == MAP_FAILED) return otherwise_->Alloc(size, actual_size, alignment);
    // The last place that fits: the system maps downwards, so this one ends where the one before begins.
    auto* const whole = static_cast<char*>(mapped);
    char* const last = whole + step;
    char* const begin = last - reinterpret_cast<uintptr_t>(last) % step;
    if (begin > whole) munmap(whole, static_cast<size_t>(begin - whole));
    char* const end = begin + wanted;
    char* const whole_end = whole + wanted + step;
    if (whole_end > end) munmap(end, static_cast<size_t>(whole_end - end));
    madvise(begin, wanted, MADV_HUGEPAGE);  // where there are none, small pages serve
    if (actual_size != nullptr) *actual_size = wanted;
    return begin;
  }

 private:
  SysAllocator* otherwise_;
};

}  // namespace

void use_huge_pages() {
  // Never destroyed: memory is asked for until the process ends.
  alignas(HugePages) static unsigned char place[sizeof(HugePages)];
  MallocExtension* const malloc = MallocExtension::instance();
  malloc->SetSystemAllocator(new (place) HugePages(malloc->GetSystemAllocator()));
}

}  // namespace siamese::cli

#else

namespace siamese::cli {

void use_huge_pages() {}

}  // namespace siamese::cli

#endif
