// Memory of the program in pages of 2 MB instead of 4 KB, where it has tcmalloc and the system hands them out on
// request (/sys/kernel/mm/transparent_hugepage/enabled: madvise or always; with never nothing changes). A pass over a
// dozen arrays of megabytes otherwise spends part of its time on finding out where each page lies.
#pragma once

namespace siamese::cli {

void use_huge_pages();

}  // namespace siamese::cli
