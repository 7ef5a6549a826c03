"""Why a plan is what it is: derivations, rules that did not fire, tables of rules and of plans."""
