#!/usr/bin/env bash
# Mutants of the sampling rule: each is one line of the engine changed in a copy, and a test must notice. The tests are linked
# with the changed object before the libraries.  sampling.sh BUILD_DIR SOURCE_DIR
set -u
build=$(realpath "$1")
source_dir=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-O1 -std=gnu11 -D_GNU_SOURCE -DNDEBUG -ffp-contract=off -I"$source_dir/runtime" -I"$source_dir/runtime/cpu"
  -I"$source_dir/tests/unit" -DSOURCE_DIR="\"$source_dir\"")
libraries=("$build/libdtrun_runtime.a" "$build/runtime/cpu/libdtrun_cpu.a" "$build/libdtrun_runtime.a"
  -pthread -lcjson -lpcre2-8 -lutf8proc -lsodium -lcmocka -lm)
failed=0
variant=scalar # of the CPU's kernels that is changed, and tested
[ "$(uname -m)" = x86_64 ] && variant=avx2 flags+=(-mavx2 -mfma -mf16c)

# How much each test samples, and from what.
arguments() { if [ "$1" = test_golden_sampling ]; then echo 300 "cpu:$variant"; else echo 10000; fi; }

# run_changed TEST FILE: the unit test with runtime/FILE as it lies in $work
run_changed() {
  cc "${flags[@]}" -DVARIANT="$variant" -c "$work/changed.c" -o "$work/changed.o" -I"$(dirname "$source_dir/runtime/$2")" &&
    cc "${flags[@]}" "$source_dir/tests/unit/$1.c" "$work/changed.o" "${libraries[@]}" -o "$work/test" || exit 1
  "$work/test" $(arguments "$1") >"$work/output" 2>&1
}

# mutant NAME TEST FILE OLD NEW: OLD stands in the file once
mutant() {
  local name=$1 test=$2 file=$3 old=$4 new=$5
  cp "$source_dir/runtime/$file" "$work/changed.c"
  [ "$(grep -cF -- "$old" "$work/changed.c")" -eq 1 ] || { echo "FAIL  $name: not one '$old' in $file"; failed=1; return; }
  OLD=$old NEW=$new perl -pi -e 's/\Q$ENV{OLD}\E/$ENV{NEW}/' "$work/changed.c"
  if run_changed "$test" "$file"; then
    echo "FAIL  $name: nobody noticed"
    failed=1
  else
    echo "ok    $name: $(grep -m1 -oE "not the target's distribution|is impossible and came [0-9]+ times|ERROR.*" "$work/output")"
  fi
}

cp "$source_dir/runtime/tree/accept.c" "$work/changed.c"
run_changed test_sampling tree/accept.c || { echo 'FAIL  the unchanged engine'; exit 1; }
run_changed test_golden_sampling tree/accept.c || { echo 'FAIL  the unchanged engine on the bundled pair'; exit 1; }

mutant 'accept with q' test_sampling tree/accept.c 't->verdict[v] = t->token[v] == next;' 't->verdict[v] = v == t->first_child[u];'
mutant 'forget top-p' test_sampling fake/fake.c 'bool in_top_p = ' 'bool in_top_p = true || '
mutant 'forget top-k' test_sampling fake/fake.c 's->top_k > 0 && s->top_k < w->vocab ? s->top_k : w->vocab' 'w->vocab'
mutant 'forget min-p' test_sampling fake/fake.c 'weight >= (double)s->min_p * first' 'true'
mutant 'forget the temperature' test_sampling fake/fake.c 'log((double)p) / (double)s->temp' 'log((double)p)'
mutant 'reuse a sample in a tree' test_sampling fake/fake.c 'position = r->position[out->row[j]]' 'position = r->prefix[out->row[j]]'
mutant 'noise without position' test_sampling fake/fake.c 'position = r->position[out->row[j]]' 'position = 0'
mutant 'noise without id' test_sampling fake/fake.c 'sample_bits(s->seed, position, id)' 'sample_bits(s->seed, position, id - id)'
mutant 'forget top-p on the CPU' test_cpu_sample cpu/sample.c 's->top_p > 0.0f && s->top_p < 1.0f' 'false'
mutant 'noise without position on the CPU' test_cpu_sample cpu/sample.c 'b = i_set1(position)' 'b = i_set1(0)'
mutant 'one sample for all runs of ids on the CPU' test_cpu_sample cpu/sample.c 'run_bits(s->seed, position, first + i, bits)' 'run_bits(s->seed, position, 0, bits)'
mutant 'noise of the wrong sign on the CPU' test_cpu_sample cpu/sample.c 'return v_sub(zero, v_log(v_if_gt(taken, zero, exact, u)));' 'return v_log(v_if_gt(taken, zero, exact, u));'
mutant 'no noise on the CPU' test_cpu_sample cpu/sample.c 'v_fma(v_load(logits + i + w * LANES), scale, gumbel(u_of(bits[w])))' 'v_mul(v_load(logits + i + w * LANES), scale)'
mutant 'guesses that do not know the noise' test_cpu_sample cpu/pass_results.c '*scores = s ? noisy : logits;' '*scores = logits;'
mutant 'guesses that know the noise of another position' test_cpu_sample cpu/pass_results.c 'if (w->head.target) position' 'position'
mutant 'the draft'"'"'s own word with the noise' test_cpu_sample cpu/pass_results.c 'log_probability(top->logit[i], own)' 'log_probability(top->score[i], own)'
mutant 'a slope of the wrong sign' test_tree tree/calibrate.c 's->shift - s->slope * log(others)' 's->shift + s->slope * log(others)'
mutant 'a lean of the wrong sign' test_tree tree/calibrate.c '(logp + s->lean * (double)d->own[i])' '(logp - s->lean * (double)d->own[i])'
mutant 'surer for every wrong guess' test_learn tree/calibration_learn.c '(came ? 1 : 0) - p' 'p - (came ? 1 : 0)'
mutant 'a share that nothing is kept back of' test_tree tree/calibrate.c 'shared = rest - log(s->share)' 'shared = rest'
mutant 'a share of what never came' test_learn tree/calibration_learn.c 'if (j == i) l->came += said' 'if (j != i) l->came += said'
mutant 'a lean away from what came' test_learn tree/calibration_learn.c '((double)d->own[i] - mean)' '(mean - (double)d->own[i])'
mutant 'the temperature after top-p' test_golden_sampling cpu/sample.c 'base = v_set1(largest), scale = v_set1(1.0f / s->temp)' 'base = v_set1(largest), scale = v_set1(1.0f)'
mutant 'the temperature after min-p' test_golden_sampling cpu/sample.c 'ln[LANES], scale = 1.0f / s->temp' 'ln[LANES], scale = 1.0f'
mutant 'top-p of all ids, not of the top-k' test_golden_sampling cpu/sample.c 'weight[i] = is_allowed(c, logits[i], i) ? weight[i] : 0;' ''
mutant 'accept with q on the bundled pair' test_golden_sampling tree/accept.c 't->verdict[v] = t->token[v] == next;' 't->verdict[v] = v == t->first_child[u];'
exit $failed
