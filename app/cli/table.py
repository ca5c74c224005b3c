"""The text table of step reports that `bench script` prints to a terminal."""

from __future__ import annotations

from app.cli.step_report import StepReport

HEADER = (
    f"{'op':<10} {'chat':<6} {'prompt':>7} {'restored':>8} {'read':>6} {'replayed':>8} {'redo':>5}"
    f" {'out':>5} {'ttft ms':>9} {'tok/s':>7}  {'why':<17} check"
)


def row(report: StepReport) -> str:
    """Format a step report as one line of the table. HEADER is the heading of its columns."""
    check = report.check
    if check is None:
        verdict = ""
    elif report.holds:
        verdict = f"equal ({check.max_difference:.1e}) {check.template_cut}".rstrip()
    else:
        at = "" if check.first_difference is None else f" from token {check.first_difference}"
        passes = f", same passes {check.replay_difference:.1e}" if check.replay_difference else ""
        verdict = f"DIFFERS{at} ({check.max_difference:.1e}{passes}) {check.detail}"
    why = report.reasons[0].kind if report.reasons else ""
    return (
        f"{report.op:<10} {report.chat:<6.6} {report.prompt_tokens:>7} {report.restored:>8}"
        f" {report.read:>6} {report.replayed:>8} {report.redo:>5} {report.output_tokens:>5}"
        f" {report.ttft_ms:>9.1f} {report.decode_tok_s:>7.1f}  {why:<17} {verdict}"
    )
