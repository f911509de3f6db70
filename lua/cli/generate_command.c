/* Generates for the command line: see generate_command.h. */
#include "cli/generate_command.h"

#include "cli/advice.h"
#include "cli/chat_hint.h"
#include "cli/compare.h"
#include "cli/complain.h"
#include "cli/interrupt.h"
#include "cli/outcome.h"
#include "cli/report.h"
#include "cli/result_file.h"

#include <string.h>

static int run(const job *j) {
  const cli_options *o = j->options;
  outcome mine, other = {0};
  comparison compared = {0};
  bool same = false;
  if (j->other) outcome_warm_up(j, j->policy);
  dtl_usage before = dtl_usage_now(false);
  int status = outcome_run(j, j->policy, false, &mine);
  dtl_usage after = dtl_usage_now(false);
  char why[DTL_WHY];
  bool computes = mine.results && mine.results->backend && strncmp(mine.results->backend, "cpu", 3) == 0;
  report_outcome(j, &mine, status, dtl_disturbed(&before, &after, computes, why, sizeof why));
  if (!status) chat_hint(j, &mine);
  bool has_result = status != EXIT_USAGE;
  if (!status && j->other) {
    status = compare_policies(j, &mine, &other, &compared);
    same = compared.rounds > 0;
    if (same) report_comparison(j, &mine, &other, &compared);
  }
  if (!status) advise(j, &mine, &before, &after, same ? &compared : NULL);
  if (o->json && !j->several && has_result) {
    dt_error err;
    if (json_write(o->json, mine.results, same ? other.results : NULL, &compared, &err)) {
      int write_status = complain_of(&err);
      if (!status) status = write_status;
    }
  }
  outcome_free(&mine, j);
  outcome_free(&other, j);
  return status;
}

int generate(cli_options *o) {
  job j;
  int status = job_open(o, &j);
  catch_interrupt();
  if (!status) status = job_costs(&j);
  if (!status) status = run(&j);
  int close_status = job_close(&j);
  return status ? status : close_status;
}
