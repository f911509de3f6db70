#!/usr/bin/env bash
# Bad input and bad usage end with exit status 2 and one line that says what was wrong, where, and what would be right.
. "$(dirname "$0")/helpers.sh"

# A damaged copy of the draft model, which is small. It is the target, so that nothing else is read.
damaged() { "$dtrun" run "$source_dir/tests/cli/checkpoint.lua" "$models/mini-draft" damaged "$@" || fail "checkpoint.lua $*"; }
refuses_damaged() {
  local pattern=$1
  shift
  damaged "$@"
  refuses 2 "$pattern" ar --target damaged --text hello -n 4
}
tensor=gpt_neox.layers.1.attention.dense.weight

it_refuses_a_missing_prompt_at_a_terminal() {
  script -qec "'$dtrun' ar" /dev/null </dev/null >screen && fail 'exit status 0'
  grep -qE '^dtrun: no prompt: .*--text.*--prompt.*pipe a text in; .dtrun chat. starts a conversation' screen || fail "not refused: $(cat screen)"
}
it_refuses_standard_input_that_is_empty_where_no_prompt_was_given() {
  refuses 2 'standard input: empty: give --prompt FILE, --text TEXT' ar </dev/null
}
it_refuses_two_prompts() { echo hello >file; refuses 2 'not both' ar --text hello --prompt file; }
it_refuses_an_empty_text() { refuses 2 'empty' ar --text ''; }
it_refuses_an_empty_prompt_file() { : >file; refuses 2 'file: empty' ar --prompt file; }
it_refuses_an_empty_standard_input() { refuses 2 'standard input: empty' ar --prompt - </dev/null; }
it_refuses_a_prompt_file_that_is_missing() { refuses 2 'nowhere.txt: No such file' ar --prompt nowhere.txt; }
it_refuses_a_folder_as_prompt_file() { refuses 2 'directory' ar --prompt .; }
it_refuses_an_endless_prompt() { refuses 2 'over 64 MiB, more than any context holds' ar --prompt /dev/zero; }
it_refuses_a_prompt_file_that_it_may_not_read() {
  echo hello >file
  chmod 0 file
  [ -r file ] && return # root reads everything
  refuses 2 'file: Permission denied' ar --prompt file
}
it_refuses_a_prompt_longer_than_the_context() {
  for _ in $(seq 4000); do echo -n 'word '; done >file
  refuses 2 'context' ar --prompt file
  refuses 2 'context' dynatree --text 'one two three four five six seven eight' --ctx 4
}
it_refuses_a_context_longer_than_the_targets() { refuses 2 '2048' ar --text hello --ctx 2049; }

it_refuses_a_missing_model_folder() {
  refuses 2 'nowhere' ar --target nowhere --text hello
  refuses 2 'nowhere' dynatree --target "$models/mini-target" --draft nowhere --text hello
}
it_refuses_a_model_folder_without_one_of_its_files() {
  for name in config.json tokenizer.json model.safetensors; do
    damaged none
    rm damaged/$name
    refuses 2 "$name.*damaged|damaged.*$name" ar --target damaged --text hello
  done
}
it_refuses_a_file_as_model_folder() { echo hello >file; refuses 2 'file' ar --target file --text hello; }
it_refuses_a_policy_with_drafts_without_a_draft_model() {
  refuses 2 'give --draft' dynatree --target "$models/mini-target" --draft none --text hello
}

it_names_the_tensor_whose_numbers_are_not_finite() {
  # a type of two bytes: all bits of the exponent, with and without other bits
  refuses_damaged "returned NaN at position [0-9]+: damaged/model.safetensors: tensor $tensor contains NaN" poke $tensor 0 ffff
  refuses_damaged "damaged/model.safetensors: tensor $tensor contains NaN" poke $tensor 20 ff7f
  refuses_damaged "damaged/model.safetensors: tensor gpt_neox.final_layer_norm.weight contains an infinity" poke gpt_neox.final_layer_norm.weight 0 007c007c
}
it_refuses_weights_cut_in_the_middle() {
  for bytes in 0 7 8 100 3000 2000000 2893807; do refuses_damaged 'model.safetensors' truncate $bytes; done
}
it_refuses_weights_with_bytes_after_the_last_tensor() { refuses_damaged 'model.safetensors' append x; }
it_refuses_a_header_longer_than_the_file() {
  for n in 2893801 99999999 1000000000000 9223372036854775807 -1; do refuses_damaged 'header length' header_length $n; done
}
it_refuses_a_header_that_is_not_json() {
  for text in '' '{' '[]' 'null' '{"a":1}' '{"a":{}}'; do refuses_damaged 'model.safetensors' header "$text"; done
}
it_refuses_tensors_that_overlap() { refuses_damaged 'data begins at' offsets $tensor 2000000 2032768; }
it_refuses_tensors_past_the_end_of_the_file() { refuses_damaged "$tensor" offsets $tensor 3000000 3032768; }
it_refuses_offsets_that_end_before_they_begin() { refuses_damaged "$tensor" offsets $tensor 2600000 2500000; }
it_refuses_tensors_whose_shape_needs_other_bytes() {
  refuses_damaged "$tensor" reshape $tensor 128,129
  refuses_damaged "$tensor" reshape $tensor 4294967296,4294967296
}
it_refuses_a_dtype_that_it_does_not_know() { refuses_damaged "$tensor" dtype $tensor I16; }
it_refuses_a_checkpoint_without_one_of_its_tensors() { refuses_damaged "$tensor" rename $tensor spare; }
it_refuses_a_tensor_of_the_wrong_shape() { refuses_damaged "$tensor.*64.*256" reshape $tensor 64,256; }
it_refuses_a_vocabulary_unlike_its_configurations() {
  damaged none
  sed -i 's/"vocab_size": 4096/"vocab_size": 5000/' damaged/config.json
  refuses 2 '5000' ar --target damaged --text hello
}
it_refuses_an_unknown_architecture() {
  damaged none
  sed -i -e 's/gpt_neox/gpt_zebra/' -e 's/GPTNeoXForCausalLM/ZebraForCausalLM/' damaged/config.json
  refuses 2 '[Zz]ebra' ar --target damaged --text hello
}
it_names_what_a_configuration_says_in_one_line() {
  damaged none
  sed -i 's/gpt_neox"/gpt\\n\\u001b[31m\\u009bzebra"/' damaged/config.json
  refuses 2 'model_type "gpt\?\?\[31m\?\?zebra" is not supported' ar --target damaged --text hello
}
it_refuses_texts_that_end_within() {
  for name in config.json tokenizer.json; do
    damaged none
    sed -i '0,/"/s/"/"\\u0000/' damaged/$name
    refuses 2 "$name: a NUL character at byte" ar --target damaged --text hello
  done
}
it_refuses_files_that_are_not_json() {
  for name in config.json tokenizer.json; do
    damaged none
    echo '{"a": ' >damaged/$name
    refuses 2 "$name" ar --target damaged --text hello
  done
}

it_refuses_models_with_different_tokenizers() {
  damaged none
  sed -i -e 's/"!": 2,/"!": 4,/' -e 's/"#": 4,/"#": 2,/' damaged/tokenizer.json
  refuses 2 'tokenizer' dynatree --target "$models/mini-target" --draft damaged --text hello
}
it_refuses_only_texts_with_a_token_that_the_model_has_no_row_for() {
  damaged none
  sed -i '0,/"added_tokens": *\[/s//&{"id":4096,"content":"<|more|>","special":true},/' damaged/tokenizer.json
  succeeds ar --target damaged --text hello -n 4 --verbose
  grep -q 'ids of the tokenizer that the target.s vocabulary lacks: 1;' stderr || fail 'not said'
  refuses 2 "token 4096, '<|more|>'" ar --target damaged --text 'hello<|more|>'
}
it_takes_a_draft_with_another_padding_of_the_vocabulary() {
  damaged pad_vocabulary 64
  succeeds ar --text 'It was a dark night' -n 60
  mv stdout expected
  succeeds dynatree --target "$models/mini-target" --draft damaged --text 'It was a dark night' -n 60
  same_text expected stdout
}
it_takes_a_target_with_another_padding_of_the_vocabulary() {
  "$dtrun" run "$source_dir/tests/cli/checkpoint.lua" "$models/mini-target" padded pad_vocabulary 384
  succeeds ar --text 'It was a dark night' -n 60
  mv stdout expected
  succeeds dynatree --target padded --draft "$models/mini-draft" --text 'It was a dark night' -n 60
  same_text expected stdout
}
it_takes_weights_at_an_odd_address() {
  damaged misalign
  succeeds ar --target "$models/mini-draft" --text 'It was a dark night' -n 20
  mv stdout expected
  succeeds ar --target damaged --text 'It was a dark night' -n 20
  same_text expected stdout
}

it_refuses_an_unknown_option_and_names_the_likely_one() {
  refuses 2 "unknown option '--promt' \(did you mean '--prompt'\?\)" ar --promt file
  refuses 2 "unknown option '--tok' \(did you mean '--tokens'\?\)" ar --tok=5
  refuses 2 "unknown option '--zebra', see" ar --zebra
  refuses 2 "unknown option '-x'" ar -x
  refuses 2 "unknown option '--a\?b'" ar $'--a\nb'
}
it_names_what_other_programs_call_otherwise() {
  for option in --draft-max --draft_max --draft-n --num_assistant_tokens; do
    refuses 2 "no option --[a-z_-]*: the policy decides how much is drafted.* --set K=8" linear --text hello $option 8
  done
  for option in -ngld --num-gpu --device; do refuses 2 'no option .*--backend' ar --text hello $option 99; done
  refuses 2 '-ngl: -1 is out of range: at least 1' ar --text hello -ngl -1
  "$dtrun" doctor 2>&1 | grep -qE '^backends:.*cuda' || for option in -ngl --gpu-layers --n-gpu-layers; do
    refuses 2 "$option: this build has no backend for GPUs; without the option, the CPU computes all layers" ar --text hello $option 99
  done
  for option in -i -cnv --interactive --conversation; do refuses 2 'no option .*dtrun chat' ar $option; done
  refuses 2 '--draft 8: expected a model \(did you mean a parameter, as in --set K=8\?\)' linear --text hello --draft 8
  refuses 2 'It was a dark night: No such file .*a text is given by -p' ar --prompt 'It was a dark night'
  refuses 2 '--compare is given twice' linear --text hello --compare ar --compare dynatree
}
it_takes_what_other_programs_call_it() {
  succeeds ar -p 'It was' -q -n 6 --temp 0.9 --top-p 0.9 --top-k 40 --seed 3 -c 100
  mv stdout expected
  succeeds ar -p 'It was' -q --n_predict 6 --temperature 0.9 --top_p 0.9 --top_k=40 --seed 3 --ctx-size 100
  same_text expected stdout
  succeeds ar -p 'It was' -q --max_new_tokens=6 --temperature=0.9 --top-p 0.9 --top_k=40 --seed 3 --ctx_size 100
  same_text expected stdout
}
it_refuses_an_option_without_its_value() { refuses 2 '--tokens needs a value: --tokens N' ar --text hello --tokens; }
it_refuses_an_option_as_the_value_of_another() {
  refuses 2 '--tokens needs a value, and not the option --seed=4: --tokens N' ar --text hello --tokens --seed=4
  refuses 2 '-p needs a value, and not the option -m: -p TEXT' ar -p -m models/mini-target
  succeeds ar --text=-m -q -n 2
  succeeds ar -p -mx -q -n 2
}
it_refuses_a_value_where_none_belongs() { refuses 2 '--ignore-eos takes no value' ar --text hello --ignore-eos=1; }
it_refuses_a_second_policy() { refuses 2 "unexpected argument 'hello'" ar hello; }
it_refuses_a_missing_driver() {
  refuses 2 'expected a driver' run
  refuses 2 'nothing-of-the-kind' run nothing-of-the-kind
  refuses 2 'nowhere.lua' run ./nowhere.lua
}
it_refuses_sampling_out_of_range() {
  for t in hot ''; do refuses 2 "--temp '$t': expected a number" ar --text hello --temp "$t"; done
  for t in -1 101; do refuses 2 "--temp: $t is out of range: 0, or 0.001 to 100" ar --text hello --temp "$t"; done
  for p in 0 1.5; do refuses 2 "--top-p: $p is out of range" ar --text hello --top-p "$p"; done
  refuses 2 "--top-k '1.5': expected a whole number" ar --text hello --top-k 1.5
  refuses 2 "--min-p: 2 is out of range: 0 to 1" ar --text hello --min-p 2
  for s in -1 18446744073709551616 x; do refuses 2 "--seed '$s': expected a whole number from 0 to 2\^64 - 1" ar --text hello --seed "$s"; done
  refuses 2 'temp: 0.000999 is out of range: 0, or 0.001 to 100' ar --text hello --temp 0.000999
  for t in 0 0.001 0.00101 100; do succeeds ar --text hello -n 2 -q --temp $t; done
  for t in 1e-300 1e-45 1.17e-38; do refuses 2 "--temp: $t is too close to 0: the smallest number above 0 is 1.18e-38" ar --text hello --temp $t; done
  refuses 2 'temp: 1.18e-38 is out of range: 0, or 0.001 to 100' ar --text hello --temp 1.18e-38
  refuses 2 "--min-p: 1e-300 is too close to 0" ar --text hello --temp 1 --min-p 1e-300
}
it_refuses_numbers_out_of_range() {
  for n in ten 1.5 ''; do refuses 2 "-n '$n': expected a whole number" ar --text hello -n "$n"; done
  for n in 0 -2 99999999999; do refuses 2 "-n: $n is out of range" ar --text hello -n "$n"; done
  for n in -1 100000; do refuses 2 "--threads: $n is out of range: 1..1024" ar --text hello --threads "$n"; done
  for n in -1 1; do refuses 2 "context: $n is out of range: 2..2048" ar --text hello -c "$n"; done
}
it_refuses_an_unknown_backend() { refuses 2 'abacus' ar --text hello --backend abacus; }
it_refuses_what_is_no_draft_vocabulary() {
  refuses 2 "--draft-vocab: '0': expected a number of ids, 1 or more, auto, or a file of ids" linear --text hello --draft-vocab 0
  refuses 2 "--draft-vocab: '4294967297': expected a number of ids" linear --text hello --draft-vocab 4294967297
  refuses 2 '--draft-vocab: 4097 is out of range: 1 to 4096' linear --text hello --draft-vocab 4097
  refuses 2 'nowhere.txt: cannot read the list of ids: No such file' linear --text hello --draft-vocab nowhere.txt
  : >ids
  refuses 2 'ids: the file has no ids: .dtrun run vocab. makes a list of them' linear --text hello --draft-vocab ids
  for wrong in '12 13' '-1' 'x' '' '99999999999'; do
    printf '7\n%s\n9\n' "$wrong" >ids
    refuses 2 'ids:2: expected one id and nothing else, as .dtrun run vocab. writes it' linear --text hello --draft-vocab ids
  done
  printf '7\n4096\n' >ids
  refuses 2 '--draft-vocab: id 4096 is out of range: 0 to 4095' linear --text hello --draft-vocab ids
  refuses 2 'vocab: --ids 4097: the model has only 4096' run vocab --ids 4097
  refuses 2 'nowhere' run vocab nowhere
}
it_refuses_unknown_weights() {
  refuses 2 "weights: 'int4' is not supported by the backend cpu; supported: f32 or q4 or q8" linear --text hello --weights int4
  refuses 2 "--draft-weights: 'f16' is not supported by the backend cpu; supported: f32 or q4 or q8" linear --text hello --draft-weights f16
  refuses 2 "weights: '' is not supported by the backend cpu; supported: f32 or q4 or q8" ar --text hello --weights ''
}
it_refuses_an_unknown_cache_dtype() { refuses 2 "'f8' is not supported by the backend cpu; supported: f16 or f32 or q8" linear --text hello --backend cpu --cache-dtype f8; }
it_refuses_unknown_activations() {
  refuses 2 "activations: '4' is not supported by the backend cpu; supported: 8 or 16" linear --text hello --backend cpu --activations 4
  refuses 2 "activations: '' is not supported by the backend cpu; supported: 8 or 16" ar --text hello --backend cpu --activations ''
}
it_refuses_a_scaling_of_positions_that_is_not_whole() {
  refuses 2 "--rope-scaling: 'ntk' is not supported; supported: none, linear, dynamic, yarn" ar --text hello --rope-scaling ntk
  refuses 2 '--rope-scaling: yarn needs rope_scale, such as 4' ar --text hello --rope-scaling yarn
  refuses 2 '--rope-scale: 4 has no effect without rope_scaling linear, dynamic or yarn' ar --text hello --rope-scale 4
  refuses 2 '--rope-scale: 0.5 is out of range: 1 to 1e.06' ar --text hello --rope-scaling linear --rope-scale 0.5
  refuses 2 '--rope-scale: 0 is out of range' ar --text hello --rope-scaling linear --rope-scale 0
  refuses 2 '--yarn-orig-ctx: 512 has no effect without rope_scaling yarn' ar --text hello --rope-scaling dynamic --rope-scale 2 --yarn-orig-ctx 512
  refuses 2 'context: 4097 is out of range: 2..4096' ar --text hello --rope-scaling linear --rope-scale 2 -c 4097
}
it_refuses_an_empty_stop_string() { refuses 2 '--stop: expected' ar --text hello --stop ''; }

it_refuses_an_unknown_policy() {
  refuses 2 'nosuchpolicy' nosuchpolicy --text hello
  refuses 2 'nowhere.lua' ./nowhere.lua --text hello
  refuses 2 "no policy 'nosuchpolicy'; installed: ar, caddtree, " ar --text hello --compare nosuchpolicy
}
it_names_the_policies_near_an_unknown_one() {
  refuses 2 "no policy 'dynatre': did you mean dynatree\?" dynatre --text hello
  refuses 2 "no policy 'tree': did you mean [a-z_]*tree, [a-z_]*tree or [a-z_]*tree\?" tree --text hello
  refuses 2 "no policy 'lookahed': did you mean lookahead\?" ar --text hello --compare lookahed
  refuses 2 "no policy 'sweep', but there is a driver of that name: dtrun run sweep" sweep --text hello
  refuses 2 "no driver 'swep': did you mean sweep\?" run swep
  refuses 2 "no driver 'linear', but there is a policy of that name: dtrun linear" run linear
  refuses 2 "no policy 'It was a dark night': give a prompt with -p" 'It was a dark night'
}
it_refuses_an_unknown_parameter() { refuses 2 'Z' linear --text hello --set Z=3; }
it_refuses_a_setting_without_a_value() {
  refuses 2 'NAME=VALUE' linear --text hello --set K
  refuses 2 'NAME=VALUE' linear --text hello --set =3
}
it_refuses_a_parameter_out_of_its_range() {
  refuses 2 'K.*1' linear --text hello --set K=0
  refuses 2 'K' linear --text hello --set K=100000
  refuses 2 'K' linear --text hello --set K=2.5
  refuses 2 'K' linear --text hello --set K=many
}
it_refuses_parameters_that_contradict_each_other() {
  refuses 2 'B_min' dynatree --text hello --set B_min=4 --set B_max=2
}
it_refuses_an_unknown_preset() { refuses 2 'nosuchpreset' dynatree --text hello --preset nosuchpreset; }

it_refuses_a_json_file_that_cannot_be_written() {
  refuses 2 'no folder nowhere/' ar --text hello --json nowhere/r.json
  refuses 2 'is a folder' ar --text hello --json .
  refuses 2 'file name' ar --text hello --json ''
}

run_tests
