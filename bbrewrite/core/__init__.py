"""The immutable forms that the stages exchange: element types, operators, terms and programs."""
