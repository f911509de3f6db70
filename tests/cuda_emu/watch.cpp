/* Device memory under watch. Kernels find it write-protected: the first write to a page faults, and its content is
 * kept, so that what a block has written is known and can be taken back while other blocks run. It is mapped twice:
 * what the emulation itself does to it goes through the mapping that is never protected. */
#include "emu.h"

#include <csignal>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

namespace emu {

const bool watching = getenv("CUDA_EMU_WATCH") != nullptr;

namespace {

constexpr size_t PAGE = 4096, GRAIN = 256; /* to which arenas round: take() in cuda/internal.cuh */
typedef std::map<unsigned char *, std::vector<unsigned char>> pages;

struct region {
  size_t bytes;
  ptrdiff_t open; /* from the kernels' mapping to the other */
  bool fresh;     /* not yet protected */
};
std::map<unsigned char *, region> regions;
enum { IDLE, HIDDEN, RUNNING } mode;  /* what the first write to a page is: the host's, an error, or a block's */
std::vector<unsigned char *> written; /* pages that the host wrote */
pages settled;                        /* those that kernels wrote since the device was quiet, as they were then */
pages others;                         /* those that the running block wrote, as the other blocks see them */
struct stretch {
  unsigned char *at;
  unsigned char kept[GRAIN];
};
std::vector<stretch> unfinished; /* what earlier kernels wrote since then */

void protect(unsigned char *at, size_t bytes, int protection) {
  if (mprotect(at, bytes, protection)) die("mprotect: no watch is kept");
}

std::map<unsigned char *, region>::iterator region_of(unsigned char *at) {
  auto next = regions.upper_bound(at);
  if (next == regions.begin()) return regions.end();
  auto found = std::prev(next);
  return at < found->first + found->second.bytes ? found : regions.end();
}

unsigned char *open(unsigned char *at) { return at + region_of(at)->second.open; }

void on_write(int, siginfo_t *info, void *) {
  unsigned char *at = static_cast<unsigned char *>(info->si_addr);
  if (region_of(at) == regions.end()) {
    signal(SIGSEGV, SIG_DFL); /* it is none of ours: again, and for good */
    return;
  }
  if (mode == HIDDEN) die("a thread writes to device memory before it waits");
  unsigned char *page = at - reinterpret_cast<uintptr_t>(at) % PAGE;
  if (mode == IDLE) written.push_back(page);
  if (mode == RUNNING) settled.try_emplace(page, page, page + PAGE), others.try_emplace(page, page, page + PAGE);
  protect(page, PAGE, PROT_READ | PROT_WRITE);
}

} // namespace

void *watched_memory(size_t bytes) {
  bytes = (bytes + PAGE - 1) / PAGE * PAGE;
  int file = memfd_create("device memory", 0);
  void *p[2] = {MAP_FAILED, MAP_FAILED};
  for (int i = 0; i < 2 && file >= 0 && !ftruncate(file, (off_t)bytes); i++)
    p[i] = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (p[1] == MAP_FAILED) die("no memory for the device");
  close(file);
  unsigned char *at = static_cast<unsigned char *>(p[0]);
  regions[at] = {bytes, static_cast<unsigned char *>(p[1]) - at, true};
  struct sigaction action = {};
  action.sa_sigaction = on_write;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  return p[0];
}

void free_watched(void *p) {
  auto freed = regions.find(static_cast<unsigned char *>(p));
  watch_settle();
  std::erase_if(written, [&](unsigned char *page) { return region_of(page) == freed; });
  munmap(p, freed->second.bytes);
  munmap(freed->first + freed->second.open, freed->second.bytes);
  regions.erase(freed);
}

void watch_settle() { settled.clear(); }

void watch_begin() {
  unfinished.clear();
  for (auto &[page, was] : settled)
    for (size_t i = 0; i < PAGE; i += GRAIN)
      if (memcmp(page + i, &was[i], GRAIN)) unfinished.push_back({page + i, {}});
  for (auto &[at, r] : regions)
    if (r.fresh) protect(at, r.bytes, PROT_READ), r.fresh = false;
  for (unsigned char *page : written) protect(page, PAGE, PROT_READ);
  written.clear();
  mode = RUNNING;
}

void watch_end() {
  watch_publish();
  mode = IDLE;
}

void watch_hide() {
  for (stretch &s : unfinished) memcpy(s.kept, s.at, GRAIN), memset(open(s.at), 0xff, GRAIN);
  mode = HIDDEN;
}

void watch_reveal() {
  for (stretch &s : unfinished) memcpy(open(s.at), s.kept, GRAIN);
  mode = RUNNING;
}

void watch_enter(const std::vector<byte_written> &own) {
  for (const byte_written &b : own) *b.at = b.value;
}

void watch_leave(std::vector<byte_written> *own) {
  own->clear();
  for (auto &[page, was] : others) {
    for (size_t i = 0; i < PAGE; i++)
      if (page[i] != was[i]) own->push_back({page + i, page[i]});
    memcpy(page, was.data(), PAGE);
  }
  watch_publish();
}

void watch_publish() {
  for (auto &[page, was] : others) protect(page, PAGE, PROT_READ);
  others.clear();
}

bool watch_publish(const void *p, size_t bytes) {
  const unsigned char *at = static_cast<const unsigned char *>(p);
  size_t offset = reinterpret_cast<uintptr_t>(at) % PAGE;
  auto page = others.find(const_cast<unsigned char *>(at - offset));
  if (page == others.end()) return false;
  memcpy(&page->second[offset], at, bytes);
  return true;
}

} // namespace emu
