from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram
from bbrewrite.lang.parser import Parsed
def check_block_program(parsed: Parsed, table: OperatorTable) -> BlockProgram:
    raise NotImplementedError
