"""Which test answers which known trouble of debug adapters: what others got wrong, with the test that holds us to the right behaviour.

Only that each named test exists is checked here; what it asserts is its own file's."""
from __future__ import annotations

import re

import pytest
from harness import ROOT

# What goes wrong elsewhere -> file of the test (below tests/), its name
PROTOCOL = {
    "breakpoints of a source without a path are an exception": (
        "protocol/test_hostile_client.py",
        "test_breakpoints_in_a_source_without_a_path_are_answered",
    ),
    "a hit counts although the condition did not hold": ("python/test_agent_conditions.py", "test_only_hits_that_meet_the_condition_count"),
    "a bare hit count means one thing here and another there": ("python/test_agent_conditions.py", "test_hit_counts"),
    "a hit count that cannot be meant is ignored": ("python/test_agent_conditions.py", "test_bad_hit_count_says_the_syntax"),
    "a log point stops": ("python/test_agent_stops.py", "test_log_points_never_stop"),
    "an error in a log point loses its message": ("protocol/test_plain_python.py", "test_conditions_hit_counts_and_log_points"),
    "ids and hits are lost when the list is sent again": (
        "protocol/test_plain_python.py",
        "test_breakpoint_ids_survive_a_resend_with_another_condition",
    ),
    "one bad breakpoint fails the list": (
        "protocol/test_hostile_client.py",
        "test_a_mistake_in_one_breakpoint_is_an_answer_about_that_one",
    ),
    "the stop overtakes the answer": (
        "protocol/test_plain_python.py",
        "test_the_response_to_a_run_request_comes_before_the_stop_it_leads_to",
    ),
    "dead references are taken for others": ("protocol/test_stops.py", "test_references_of_an_earlier_stop_are_refused_and_never_reused"),
    "a client without paging gets pages": ("protocol/test_tensor_views.py", "test_without_paging_all_elements_come_and_no_more_than_fit"),
    "pages miss or repeat elements": ("protocol/test_tensor_views.py", "test_values_are_paged_by_the_first_axis"),
    "fewer instructions than were asked for": ("protocol/test_tensor_views.py", "test_disassembly_has_exactly_as_many_lines_as_asked"),
    "NaN is no JSON": ("protocol/test_wire.py", "test_nan_and_infinity_travel_as_words_and_come_back_as_numbers"),
    "the length counts characters": ("protocol/test_plain_python.py", "test_breakpoints_bind_in_a_folder_with_an_odd_name"),
    "cancel waits behind what it cancels": ("protocol/test_tensor_views.py", "test_a_cancelled_request_is_answered"),
    "columns are bytes or code points": ("protocol/test_writing.py", "test_places_for_breakpoints_are_statements_and_operations_in_utf16"),
    "a reload moves breakpoints and says nothing": (
        "protocol/test_tensor_views.py",
        "test_a_reload_is_reported_once_and_breakpoints_are_bound_again",
    ),
    "pages of a hundred lose or repeat the next element": (
        "protocol/test_pages_and_columns.py",
        "test_pages_of_a_hundred_have_each_element_once",
    ),
    "completions behind an emoji are of another word": (
        "protocol/test_pages_and_columns.py",
        "test_completions_are_of_what_stands_before_the_column",
    ),
    "a stop is a kill, and nothing is saved": (
        "protocol/test_terminate.py",
        "test_a_program_saves_before_it_ends_and_stops_at_nothing_on_its_way",
    ),
    "a terminal that the client refuses is waited for": (
        "protocol/test_plain_python.py",
        "test_a_program_that_the_client_runs_in_no_terminal_runs_without_one",
    ),
    "escape sequences reach a client that shows them": (
        "protocol/test_output.py",
        "test_styling_reaches_a_client_that_knows_it_and_no_other",
    ),
    "a data breakpoint is lost by a reload": ("python/test_agent_reload.py", "test_a_data_breakpoint_holds_over_a_reload"),
    "memory is read past its end": ("protocol/test_tensor_views.py", "test_memory_is_read_to_its_end_and_not_beyond"),
    "what is announced is not served": (
        "protocol/test_capabilities.py",
        "test_every_announced_request_is_served_and_the_others_are_not_announced",
    ),
    "what a client has asked for comes back as news": (
        "protocol/test_hostile_client.py",
        "test_no_event_comes_between_a_list_of_breakpoints_and_its_answer",
    ),
    "the end waits behind a request that is at work": (
        "protocol/test_hostile_client.py",
        "test_a_request_still_at_work_when_the_client_disconnects_holds_nothing_back",
    ),
    "events after the end": (
        "protocol/test_hostile_client.py",
        "test_nothing_is_told_after_the_end_of_the_program_but_answers",
    ),
    "an answer that is no JSON is dropped, and its request never resolves": (
        "protocol/test_hostile_client.py",
        "test_a_request_is_answered_once_also_where_its_answer_cannot_be_written",
    ),
    "a restart loses what was set": ("protocol/test_golden.py", "test_a_program_that_is_started_anew"),
    "a restart that is interrupted leaves a program": (
        "protocol/test_stress.py",
        "test_a_program_that_is_restarted_may_be_disconnected_from_meanwhile",
    ),
    "a column breakpoint is taken for a whole line in silence": ("protocol/test_writing.py", "test_a_column_is_said_to_be_the_whole_line"),
}
REPORTS = {
    "editable installs and folders through links never bind": (
        "protocol/test_sources.py",
        "test_a_folder_reached_through_a_link_binds_both_ways_under_the_path_that_was_given",
    ),
    "mappings of paths with other slashes or ends fail in silence": (
        "protocol/test_capabilities.py",
        "test_paths_of_the_client_and_of_the_program_lead_to_each_other",
    ),
    "paths of a container reach the editor": (
        "protocol/test_whole.py",
        "test_a_program_whose_files_are_called_otherwise_is_stopped_in_watched_and_edited",
    ),
    "a breakpoint on a line without code is never hit": (
        "protocol/test_terminal.py",
        "test_a_breakpoint_says_what_it_replaces_and_where_it_stops",
    ),
    "a breakpoint on a decorated def means what nobody expects": (
        "python/test_agent_stops.py",
        "test_the_head_of_a_captured_function_is_told_where_its_calls_stop",
    ),
    "a step leaves a compiled function at a graph break": (
        "python/test_agent_stops.py",
        "test_a_step_of_python_ends_at_the_next_part_of_its_function",
    ),
    "tracing slows or changes a program with nothing set": (
        "protocol/test_tracing.py",
        "test_untraced_with_nothing_set_traced_with_a_breakpoint_and_untraced_without",
    ),
    "an attach that the system forbids hangs": (
        "protocol/test_attach_pid.py",
        "test_the_remedy_is_named_where_injection_cannot_work",
    ),
    "a mapping that leads nowhere is used in silence": (
        "protocol/test_hostile_client.py",
        "test_a_folder_of_the_mappings_that_is_not_here_is_said",
    ),
    "modules of archives and of machine code are an exception": (
        "protocol/test_hostile_client.py",
        "test_breakpoints_in_what_has_no_lines_are_answers",
    ),
    "the debugger keeps tensors alive": (
        "python/test_agent_stops.py",
        "test_what_was_looked_at_at_a_stop_lives_no_longer_than_without_a_debugger",
    ),
    "what forbids it is not told": ("protocol/test_pages_and_columns.py", "test_what_the_system_forbids_to_attach_is_said_with_its_remedy"),
    "stop pressed right behind start is answered by nothing": (
        "protocol/test_plain_python.py",
        "test_a_program_that_is_ended_before_it_began",
    ),
    "a form feed shifts every edit behind it": (
        "protocol/test_lsp.py",
        "test_an_edit_behind_what_is_no_end_of_a_line_is_made_where_the_editor_made_it",
    ),
    "a folder called as an archive hides its files": ("protocol/test_sources.py", "test_a_breakpoint_in_a_folder_with_an_odd_name"),
    "odd folder names: nothing starts": ("protocol/test_sources.py", "test_a_breakpoint_in_a_folder_with_an_odd_name"),
    "a byte order mark, a coding cookie, other line ends": ("protocol/test_sources.py", "test_a_breakpoint_in_a_text_of_each_kind"),
    "a byte order mark breaks the reload": ("python/test_reload_transaction.py", "test_text_from_the_editor_with_byte_order_mark_and_crlf"),
    "cells of notebooks": ("protocol/test_sources.py", "test_a_program_of_the_console_may_be_a_cell"),
    "the stop is hollow: its breakpoint looks unverified": (
        "protocol/test_stops.py",
        "test_a_backward_stop_is_announced_once_and_steps_are_the_vms",
    ),
    "a stop shows newer text than what runs": ("protocol/test_whole.py", "test_a_call_on_the_stack_shows_the_text_it_was_compiled_from"),
    "breakpoints in code made anew are missed": ("python/test_agent_pydevd.py", "test_a_breakpoint_in_swapped_code_is_hit"),
    "a big tensor freezes the session": (
        "python/test_agent_large.py",
        "test_a_gigabyte_is_listed_hovered_sliced_and_paged_without_being_read",
    ),
    "eight-bit floats are shown as their bits": ("python/test_agent_foreign.py", "test_all_codes_of_eight_bit_floats_are_pytorchs_numbers"),
    "bfloat16 cannot be opened": ("python/test_agent_values.py", "test_statistics_of_bfloat16_are_of_its_numbers"),
    "an empty tensor has garbage for statistics": ("python/test_agent_values.py", "test_an_empty_tensor_has_counts_and_no_extremes"),
    "a look runs the user's code": ("protocol/test_plain_python.py", "test_hovers_run_no_code"),
    "statistics are computed for what nobody opened": ("protocol/test_tensor_views.py", "test_statistics_are_lazy_and_open_into_figures"),
    "a copy is read before it is done": (
        "python/test_device_snapshots.py",
        "test_ten_thousand_snapshots_with_faults_publish_no_wrong_bytes",
    ),
    "processes survive": ("protocol/test_kill.py", "test_no_process_survives"),
    "a client that vanishes leaves a program": ("protocol/test_stress.py", "test_a_client_that_vanishes_leaves_nothing"),
    "workers of a data loader hang": ("protocol/test_children.py", "test_without_subprocess_debugging_children_run_free"),
    "a forked child has the parent's connection": ("python/test_agent_process.py", "test_a_forked_child_has_an_agent_of_its_own"),
    "Ctrl-C never reaches the program, or ends the adapter": (
        "protocol/test_terminal.py",
        "test_in_a_real_terminal_ctrl_c_reaches_the_debugger_alone",
    ),
    "output of the program on the protocol's stream": (
        "protocol/test_plain_python.py",
        "test_stray_prints_do_not_reach_the_protocol_stream",
    ),
    "a broken message ends more than its session": (
        "protocol/test_stress.py",
        "test_broken_and_oversized_messages_end_one_session_and_no_other",
    ),
    "a second engine that is not there yet is an error": (
        "protocol/test_tensor_views.py",
        "test_watches_hold_over_the_agents_coming_and_deliver_snapshots",
    ),
    "a save at a stop is answered by nothing": ("protocol/test_terminal.py", "test_a_saved_file_is_reloaded_at_a_stop"),
    "devices disagree and nobody says where": (
        "python/test_agent_divergence.py",
        "test_a_device_that_computes_otherwise_is_found_at_the_first_op_with_both_values",
    ),
    "a debugger changes results": ("protocol/test_same_bits.py", "test_losses_are_those_of_a_run_alone_watched_and_stopped"),
}


@pytest.mark.parametrize("trouble", [*PROTOCOL, *REPORTS])
def test_it_has_a_test(trouble):
    file, name = {**PROTOCOL, **REPORTS}[trouble]
    text = (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert re.search(rf"^def {name}\b", text, re.MULTILINE), f"{file} has no {name}"
