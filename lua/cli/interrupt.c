/* Handles Ctrl-C and other signals: see interrupt.h. */
#include "cli/interrupt.h"

#include <stdlib.h>
#include <unistd.h>

volatile sig_atomic_t interrupted;

static void on_interrupt(int signal) {
  (void)signal;
  interrupted = 1;
}

/* mpirun ends its processes with this signal. */
static void on_end(int signal) {
  static const char line[] =
      "dtrun: mpirun has ended the run: one of its ranks died (mpirun says which), or mpirun was stopped\n";
  ssize_t said = write(STDERR_FILENO, line, sizeof line - 1);
  (void)signal, (void)said;
  _exit(EXIT_FAILURE);
}

static void catch_with(int flags) {
  struct sigaction old, action = {.sa_handler = on_interrupt, .sa_flags = flags};
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(SIGINT, &action, NULL);
}

void catch_interrupt(void) { catch_with((int)SA_RESETHAND | SA_RESTART); }
void catch_interrupts(bool cut_reads) { catch_with(cut_reads ? 0 : SA_RESTART); }

void catch_stop(void) {
  struct sigaction action = {.sa_handler = on_interrupt};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  signal(SIGPIPE, SIG_IGN);
}

void catch_end(void) { signal(SIGTERM, on_end); }
